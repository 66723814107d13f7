"""The engines over someone else's database, which read rows where they are: Postgres and Spark."""
