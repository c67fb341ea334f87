package config

// AddRule is what SaveRule does to the content of a file.
var AddRule = addRule
