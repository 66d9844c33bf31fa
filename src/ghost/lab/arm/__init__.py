"""An emulator of Azure Resource Manager, of its identity service and of blob storage, answering from the lab's world.

`resource_manager.answer` is a function over a lab's directory: a request in, a response out. The lab's own `az` program
calls it in its own process; `server` puts it behind HTTPS for an unmodified Azure CLI. Both show the same tenant.

Bodies and errors follow https://learn.microsoft.com/rest/api/azure/; tests check them against Azure's own models.
"""
