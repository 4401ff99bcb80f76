//go:build !linux && !darwin

package workspace

import "os"

// attributes are not supported here.
func attributes(*os.File) []attribute { return nil }

func setAttributes(*os.File, []attribute) {}
