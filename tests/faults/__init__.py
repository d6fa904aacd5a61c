"""The worker under faults, on Apache Kafka: nothing is lost, nothing applied twice."""
