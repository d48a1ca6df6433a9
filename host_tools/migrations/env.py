"""How Alembic runs a step: on the connection, and in the transaction, of host_tools.migrations.upgrade."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
