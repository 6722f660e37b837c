"""Sources: packets of other protocols as NetworkTables publications. Pure; ``table.SOURCES`` names all of them."""
