"""
The machinery every controller shares: remember what is out there, take one key at a time, ask for a plan, carry
it out, come back later. It never knows what a plan is for.
"""
