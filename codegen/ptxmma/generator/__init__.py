"""From ``spec/`` to everything that is generated: load -> build -> rules -> derive -> emit -> write."""
