package probe

import (
	"encoding/hex"
	"fmt"
	"os"
)

// tree prints a tree object of git, byte for byte: git's own commands refuse
// most of the names that an attacker wants in one.
func tree(args []string) (any, error) {
	for i := 0; i+2 < len(args); i += 3 {
		id, err := hex.DecodeString(args[i+2])
		if err != nil {
			return nil, err
		}
		if _, err := fmt.Fprintf(os.Stdout, "%s %s\x00%s", args[i], args[i+1], id); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
