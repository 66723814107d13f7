"""What travels between a service and its clients, as JSON: results, problems, statistics, losses and plans.

Both ends use these modules, so a client shows exactly what the guard released.
"""
