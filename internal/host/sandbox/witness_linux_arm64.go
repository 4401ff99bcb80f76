package sandbox

import "golang.org/x/sys/unix"

var legacyPassings = map[uint32]passing{
	unix.SYS_RENAMEAT: {noArg, []nameAt{{0, 1, false}, {2, 3, false}}, entryTree},
}
