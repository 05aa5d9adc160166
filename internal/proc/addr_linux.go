package proc

import "unsafe"

// addrOf gives the address for a prctl that writes its answer there.
func addrOf(p *int32) uintptr { return uintptr(unsafe.Pointer(p)) }
