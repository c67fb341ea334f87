package config

// AddRule is the change that SaveRule makes to the content of a file.
var AddRule = addRule
