"""What travels between a service and its clients, as JSON: results, problems, statistics, losses and plans.

Both ends use these modules, so that what a client shows is what the guard released.
"""
