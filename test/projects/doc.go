// Package projects tries what litterbox init writes on public projects as their
// authors publish them, and runs their own tests in sandboxes: in a new one, above
// many frozen layers, and above joined layers. Start reading at table_linux_test.go.
package projects
