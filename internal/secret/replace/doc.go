// Package replace puts some byte sequences in the place of others in a stream,
// whatever pieces it comes in, and finds them. It is pure: it reads no source,
// sends nothing, and knows neither secrets nor HTTP beyond the encodings in
// which programs write a value ([Forms]).
//
// A [Stream] never gives out a sequence that it replaces. It holds back only
// what may be the beginning of one, and no longer than until the next byte
// says that it is not. Start reading at [Table].
package replace
