// Package secret is about values that programs in a sandbox use and never see:
// where a value comes from ([Source]), which hosts may be told it ([Host]), in
// which places of a request ([Place]), and the placeholder that stands for it
// inside ([Placeholder]).
//
// A sandbox gets the placeholder. The keeper puts the value in its place on the
// way to a host of the binding, and the placeholder in the place of the value
// on the way back (packages secret/replace and egress/inject). This package
// reads no source and sends nothing by itself. Start reading at [Spec].
package secret
