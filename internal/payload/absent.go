//go:build !embedguest

package payload

func embedded(string) []byte { return nil }
