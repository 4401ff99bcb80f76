package sandbox

import "golang.org/x/sys/unix"

var legacyPassings = map[uint32]passing{
	unix.SYS_OPEN:     {1, []nameAt{{noArg, 0, true, false}}},
	unix.SYS_CREAT:    {noArg, []nameAt{{noArg, 0, true, false}}},
	unix.SYS_RENAME:   {noArg, []nameAt{{noArg, 0, false, true}, {noArg, 1, false, true}}},
	unix.SYS_RENAMEAT: {noArg, []nameAt{{0, 1, false, true}, {2, 3, false, true}}},
	unix.SYS_UNLINK:   {noArg, []nameAt{{noArg, 0, false, false}}},
	unix.SYS_RMDIR:    {noArg, []nameAt{{noArg, 0, false, false}}},
	unix.SYS_MKDIR:    {noArg, []nameAt{{noArg, 0, false, false}}},
	unix.SYS_MKNOD:    {noArg, []nameAt{{noArg, 0, false, false}}},
	unix.SYS_LINK:     {noArg, []nameAt{{noArg, 1, false, false}}},
	unix.SYS_SYMLINK:  {noArg, []nameAt{{noArg, 1, false, false}}},
	unix.SYS_CHMOD:    {noArg, []nameAt{{noArg, 0, true, false}}},
}
