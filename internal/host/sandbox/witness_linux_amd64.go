package sandbox

import "golang.org/x/sys/unix"

var legacyPassings = map[uint32]passing{
	unix.SYS_OPEN:     {1, []nameAt{{noArg, 0, true}}, entryOpen},
	unix.SYS_CREAT:    {noArg, []nameAt{{noArg, 0, true}}, entryOpen},
	unix.SYS_RENAME:   {noArg, []nameAt{{noArg, 0, false}, {noArg, 1, false}}, entryTree},
	unix.SYS_RENAMEAT: {noArg, []nameAt{{0, 1, false}, {2, 3, false}}, entryTree},
	unix.SYS_UNLINK:   {noArg, []nameAt{{noArg, 0, false}}, entryGone},
	unix.SYS_RMDIR:    {noArg, []nameAt{{noArg, 0, false}}, entryGone},
	unix.SYS_MKDIR:    {noArg, []nameAt{{noArg, 0, false}}, entryFile},
	unix.SYS_MKNOD:    {noArg, []nameAt{{noArg, 0, false}}, entryFile},
	unix.SYS_LINK:     {noArg, []nameAt{{noArg, 1, false}}, entryFile},
	unix.SYS_SYMLINK:  {noArg, []nameAt{{noArg, 1, false}}, entryFile},
	unix.SYS_CHMOD:    {noArg, []nameAt{{noArg, 0, true}}, entryFile},
}
