package inside

import (
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver/landlock/confine"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/stage"
)

func stageMain(verb string) int {
	if strings.HasPrefix(verb, confine.Prefix) {
		confine.Main(verb)
		return 0
	}
	stage.Main(verb)
	return 0
}
