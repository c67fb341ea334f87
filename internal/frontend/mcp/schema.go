package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

const (
	// sessionArgument names the session where the protocol has none.
	sessionArgument = "session"
	// sandboxArgument names one of several sandboxes of a session.
	sandboxArgument = "sandbox"
)

// concerns is a call's own statement of where it belongs.
type concerns struct {
	session string // empty where the protocol has sessions
	sandbox string // empty for the one opened last
}

// schemaOf derives the schema of arguments or results. Lists are never null.
func schemaOf[T any](handles bool) *jsonschema.Schema {
	schema, err := jsonschema.For[T](nil)
	if err != nil {
		panic(err) // a type of this package without a schema: the tests see it
	}
	tidy(schema)
	schema.AdditionalProperties = nil // decode refuses unknown ones, and says it better
	if handles {
		addArgument(schema, sessionArgument, "from sandbox-create or sandbox-open")
	}
	return schema
}

// addArgument adds an optional argument that is not the tool's own.
func addArgument(schema *jsonschema.Schema, name, description string) {
	if schema.Properties == nil {
		schema.Properties = map[string]*jsonschema.Schema{}
	}
	schema.Properties[name] = &jsonschema.Schema{Type: "string", Description: description}
	schema.PropertyOrder = append(schema.PropertyOrder, name)
}

func tidy(schema *jsonschema.Schema) {
	if schema == nil {
		return
	}
	if slices.Contains(schema.Types, "null") {
		schema.Types = slices.DeleteFunc(schema.Types, func(t string) bool { return t == "null" })
		if len(schema.Types) == 1 {
			schema.Type, schema.Types = schema.Types[0], nil
		}
	}
	tidy(schema.Items)
	for _, property := range schema.Properties {
		tidy(property)
	}
}

// decode reads arguments. Every error says which argument is wrong and how.
func decode[In arguments](name string, schema *jsonschema.Schema, raw json.RawMessage) (in In, about concerns, err error) {
	invalid := func(format string, args ...any) error {
		return fault.New(fault.Invalid, "cannot call %s: %s", name, fmt.Sprintf(format, args...)).WithHint("it takes %s", signature(schema))
	}
	given := map[string]json.RawMessage{}
	if len(raw) > 0 && string(raw) != "null" {
		if err := json.Unmarshal(raw, &given); err != nil {
			return in, about, invalid("its arguments are not a JSON object")
		}
	}
	for key, value := range given {
		if string(value) == "null" {
			delete(given, key) // some clients send null for an omitted argument
		}
	}
	respell(schema, given)
	for _, key := range slices.Sorted(maps.Keys(given)) {
		// Exactly: encoding/json would take any letter case.
		if schema.Properties[key] == nil {
			return in, about, invalid("it has no argument %q", key)
		}
	}
	for key, into := range map[string]*string{sessionArgument: &about.session, sandboxArgument: &about.sandbox} {
		if value, ok := given[key]; ok {
			if json.Unmarshal(value, into) != nil {
				return in, about, invalid("%s is not a string", key)
			}
			delete(given, key)
		}
	}
	for _, key := range schema.Required {
		if _, ok := given[key]; !ok {
			return in, about, invalid("%s is missing", key)
		}
	}
	clean, err := json.Marshal(given)
	if err == nil {
		err = json.Unmarshal(clean, &in)
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return in, about, invalid("%s is a %s and must be of type %s", wrong.Field, wrong.Value, schemaType(schema, wrong.Field))
	case err != nil:
		return in, about, invalid("%v", err)
	}
	if err := in.check(); err != nil {
		return in, about, invalid("%s", err.Error())
	}
	return in, about, nil
}

func schemaType(schema *jsonschema.Schema, field string) string {
	if property := schema.Properties[field]; property != nil && property.Type != "" {
		return property.Type
	}
	return "another"
}

// signature lists the arguments, those that may be left out in brackets.
func signature(schema *jsonschema.Schema) string {
	var parts []string
	for _, key := range schema.PropertyOrder {
		if !slices.Contains(schema.Required, key) {
			key = "[" + key + "]"
		}
		parts = append(parts, key)
	}
	if len(parts) == 0 {
		return "no arguments"
	}
	return strings.Join(parts, ", ")
}

// filled demands a text that is not empty.
func filled(key, value, what string) error {
	if strings.TrimSpace(value) == "" {
		return fmt.Errorf("%s is empty: %s", key, what)
	}
	return nil
}

// The lengths in bytes up to which arguments make sense.
const (
	pathMost    = 4 << 10   // PATH_MAX
	messageMost = 16 << 10  // of a commit
	commandMost = 100 << 10 // an argument of execve(2) has at most 128 KiB
	nameMost    = 256       // of a sandbox
)

// message checks text for a commit message.
func message(text string) error {
	if err := filled("message", text, why); err != nil {
		return err
	}
	return shortEnough("message", text, messageMost)
}

// shortEnough checks the length of an argument.
func shortEnough(key, value string, most int) error {
	if len(value) > most {
		return fmt.Errorf("%s has %d bytes and must have at most %d", key, len(value), most)
	}
	return nil
}

// path checks a required path.
func path(value, what string) error {
	return errors.Join(filled("path", value, what), shortEnough("path", value, pathMost))
}

// why says what a message is for.
const why = "say in one line what this does and why; it becomes the commit's message"
