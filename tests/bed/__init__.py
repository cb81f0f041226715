"""
The test bed: the programs that Lamina is compared with.

It builds and runs a real control plane, pinned versions of kubectl and Kubernetes' own
end-to-end suite. It starts Lamina through its command line and uses none of its
modules. `python -m tests.bed` lists the commands.
"""
