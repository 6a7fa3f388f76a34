"""Programs in any language: started once, asked over their pipes, ended with what they started."""
