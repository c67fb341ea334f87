// Package moby carries out orders of package container with the client library of
// Docker, whose API Podman serves too. The library is large, so only the full
// program links it.
//
// An engine's answers are trusted no more than they must be: the streams that it
// carries belong to package outpost, which trusts no machine. Start reading at
// [Engine.Do].
package moby
