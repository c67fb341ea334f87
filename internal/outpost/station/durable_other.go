//go:build !linux

package station

func (s *Station) settle() {}
