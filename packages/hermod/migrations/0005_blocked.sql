-- One word for an event that waits for an earlier one of its aggregate.
alter type outbox.settlement rename attribute held to blocked;
