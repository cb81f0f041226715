"""
Other people's programs as judges of ours.

The bed builds and runs what Lamina is compared with: a real control plane,
pinned versions of kubectl and Kubernetes' own end-to-end suite. It starts
Lamina the way a user would, through its command, and knows nothing of its
insides. `python -m tests.bed` lists what it can do.
"""
