"""Workqueue, worker, executor and manager: what runs any controller."""
