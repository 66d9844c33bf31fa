"""An emulator of Azure Resource Manager, its identity service and blob storage, based on the lab's world.

`resource_manager.answer` is a function from request to response over a lab's directory. The lab's own `az` calls it in
its own process; `http_server` serves it over HTTPS for an unmodified Azure CLI.

Bodies and errors follow https://learn.microsoft.com/rest/api/azure/; tests compare them with Azure's own models.
"""
