"""Apache Kafka and an S3 server for the tests: fetching, starting, and the fixtures."""
