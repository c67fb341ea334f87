// Command litterbox-outpost is the program that runs in a machine, outside
// every place, and answers hosts. litterbox starts it.
package main

import (
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/app/outpost"
)

func main() { os.Exit(outpost.Main(os.Args)) }
