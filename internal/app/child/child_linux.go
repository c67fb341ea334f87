package child

import "github.com/litterbox-sandbox/litterbox/internal/driver/namespace/stage"

func stageMain(verb string) int {
	stage.Main(verb)
	return 0
}
