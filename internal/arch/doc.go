// Package arch holds only tests: which package may import which, that paths
// named in the documentation exist, and a few rules of style that a reviewer
// would otherwise repeat.
//
// Start reading at the policy in policy_test.go.
package arch
