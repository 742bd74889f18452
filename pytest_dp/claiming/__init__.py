"""Claims, validated: promises, arguments, settings, methods by name, profiles, tables of claims."""
