"""Apache Kafka for the tests: fetching it, starting brokers, and the fixtures."""
