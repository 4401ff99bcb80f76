//go:build linux && !amd64 && !arm64

package sandbox

var legacyCalls map[uint32]recordedCall
