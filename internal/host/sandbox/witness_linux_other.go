//go:build linux && !amd64 && !arm64

package sandbox

var legacyPassings map[uint32]passing
