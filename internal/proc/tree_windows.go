package proc

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// politeSignal is nil: a program without a window has no signal to end by.
var politeSignal os.Signal

// chase ends all members of the run's job object at once.
func (t *tree) chase() (int, error) {
	if t.marker == "" {
		return 0, nil
	}
	job, err := openJob(t.marker, false)
	if err != nil || job == 0 {
		return 0, err
	}
	defer windows.CloseHandle(job)
	if err := windows.TerminateJobObject(job, 1); err != nil {
		return 0, fmt.Errorf("end job object: %w", err)
	}
	return 0, nil
}

// killGroup is for systems with process groups.
func killGroup(ID) {}

// maxJobMembers bounds the list asked for in one call.
const maxJobMembers = 4096

func sweep(marker string) ([]ID, error) {
	job, err := openJob(marker, false)
	if err != nil || job == 0 {
		return nil, err
	}
	defer windows.CloseHandle(job)
	// JOBOBJECT_BASIC_PROCESS_ID_LIST: two counts, then the numbers.
	var list struct {
		Assigned, InList uint32
		PIDs             [maxJobMembers]uintptr
	}
	err = windows.QueryInformationJobObject(job, windows.JobObjectBasicProcessIdList,
		uintptr(unsafe.Pointer(&list)), uint32(unsafe.Sizeof(list)), nil)
	if err != nil && !errors.Is(err, windows.ERROR_MORE_DATA) {
		return nil, fmt.Errorf("list members of job object: %w", err)
	}
	var ids []ID
	for _, pid := range list.PIDs[:min(list.InList, maxJobMembers)] {
		if int(pid) == os.Getpid() {
			continue
		}
		if id, err := Identify(int(pid)); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Marked is not supported on Windows: job objects can be asked for by name
// only.
func Marked() (map[string][]ID, error) {
	return nil, fmt.Errorf("sweep processes: %w", errors.ErrUnsupported)
}
