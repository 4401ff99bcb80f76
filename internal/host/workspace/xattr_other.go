//go:build !linux && !darwin

package workspace

import "os"

// attributes are not kept where we do not know how.
func attributes(*os.File) []attribute { return nil }

func setAttributes(*os.File, []attribute) {}
