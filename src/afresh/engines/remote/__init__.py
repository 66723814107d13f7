"""The engines over other databases, which read rows in place: Postgres and Spark."""
