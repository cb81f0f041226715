"""
Runs controllers: informers fill caches, a workqueue orders keys, workers reconcile them and write the plans.

It is the same for every controller, and knows nothing of what a plan is for.
"""
