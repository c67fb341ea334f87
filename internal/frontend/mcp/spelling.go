package mcp

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"
)

// spellings are names that models use for arguments because other tools of coding
// agents have them. A spelling is understood where a tool has the argument that it
// stands for and none of that name.
func spellings() map[string]string {
	return map[string]string{
		"cwd": "dir", "workdir": "dir", "working_dir": "dir", "working_directory": "dir", "directory": "dir",
		"cmd": "command", "script": "command", "bash": "command",
		"description": "message", "commit_message": "message", "msg": "message", "summary": "message",
		"file_path": "path", "filepath": "path", "file": "path", "filename": "path", "target_file": "path", "relative_path": "path",
		"old_string": "old", "old_str": "old", "old_text": "old", "oldText": "old", "oldString": "old",
		"new_string": "new", "new_str": "new", "new_text": "new", "newText": "new", "newString": "new",
		"replaceAll": "replace_all", "allow_multiple": "replace_all",
		"contents": "content", "text": "content", "file_text": "content",
		"query": "pattern", "regex": "pattern", "search": "pattern",
		"include": "glob", "file_pattern": "glob", "glob_pattern": "glob",
		"case_insensitive": "ignore_case", "ignoreCase": "ignore_case", "-i": "ignore_case",
		"-C": "context", "context_lines": "context",
		"max_results": "limit", "head_limit": "limit", "max_bytes": "limit",
		"start_line": "line", "line_number": "line", "end": "end_line", "endLine": "end_line", "startLine": "line",
		"sandbox": "name", "sandbox_name": "name", "title": "name",
		"command_id": "command", "kill": "stop",
		"base_branch": "base", "ref": "base", "from_ref": "base",
		"step": "to", "snapshot": "to", "iteration": "to",
	}
}

// respell gives arguments the names that the tool has for them.
func respell(schema *jsonschema.Schema, given map[string]json.RawMessage) {
	all := spellings()
	for _, foreign := range slices.Sorted(maps.Keys(all)) { // in order: two of them may stand for one argument
		own := all[foreign]
		value, there := given[foreign]
		if _, taken := given[own]; !there || taken || schema.Properties[foreign] != nil || schema.Properties[own] == nil {
			continue
		}
		given[own] = value
		delete(given, foreign)
	}
	for key, value := range given {
		property := schema.Properties[key]
		if property == nil {
			continue
		}
		if fitting := retype(property.Type, value); fitting != nil {
			given[key] = fitting
		}
		if property.Items != nil && property.Items.Type == "object" {
			given[key] = respellEach(property.Items, given[key])
		}
	}
}

// respellEach respells the objects of a list.
func respellEach(schema *jsonschema.Schema, list json.RawMessage) json.RawMessage {
	var each []map[string]json.RawMessage
	if json.Unmarshal(list, &each) != nil {
		return list // the type check reports the error
	}
	for _, one := range each {
		respell(schema, one)
	}
	if clean, err := json.Marshal(each); err == nil {
		return clean
	}
	return list
}

// retype reads a number or a truth value that was sent as a string, and a number
// where a string is wanted; nil where there is nothing to do.
func retype(wanted string, value json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(value, &text) != nil {
		// A whole number may come as 5.0.
		number, err := strconv.ParseFloat(string(value), 64)
		switch {
		case err != nil:
			return nil
		case wanted == "integer" && number == math.Trunc(number) && math.Abs(number) < 1<<53:
			return json.RawMessage(strconv.FormatInt(int64(number), 10))
		case wanted == "string":
			return json.RawMessage(`"` + string(value) + `"`)
		}
		return nil
	}
	switch wanted {
	case "integer":
		if number, err := strconv.ParseInt(text, 10, 64); err == nil {
			return json.RawMessage(strconv.FormatInt(number, 10))
		}
	case "number":
		if number, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(number, 0) && !math.IsNaN(number) {
			return json.RawMessage(strconv.FormatFloat(number, 'g', -1, 64))
		}
	case "boolean":
		if text == "true" || text == "false" {
			return json.RawMessage(text)
		}
	case "array":
		// Some clients send a list as its JSON text.
		var list []json.RawMessage
		if json.Unmarshal([]byte(text), &list) == nil {
			return json.RawMessage(text)
		}
	}
	return nil
}
