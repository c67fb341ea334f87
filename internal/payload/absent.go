//go:build !embedguest

package payload

func embedded(string) (packed []byte, id string) { return nil, "" }

func embeddedFull() (packed []byte, id string) { return nil, "" }

func embeddedKeeper() (packed []byte, id string) { return nil, "" }

func embeddedOutpost(string) (packed []byte, id string) { return nil, "" }
