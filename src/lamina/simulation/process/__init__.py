"""One simulated process: controllers, their caches and their workqueue."""
