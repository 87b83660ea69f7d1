"""A script as users of pyACL write it: it knows nothing of msdump."""

import sys

import acl
import numpy as np

ACL_MEM_MALLOC_HUGE_FIRST = 0
ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST = 1, 2


def check(ret, what):
    if ret != 0:
        raise SystemExit(f"{what} failed: {ret}: {acl.get_recent_err_msg()}")


class Net:
    def __init__(self, path, device=0):
        self.device = device
        check(acl.init(), "init")
        check(acl.rt.set_device(device), "set_device")
        self.context, ret = acl.rt.create_context(device)
        check(ret, "create_context")
        check(acl.mdl.init_dump(), "init_dump")
        check(acl.mdl.set_dump("acl.json"), "set_dump")
        self.model_id, ret = acl.mdl.load_from_file(path)
        check(ret, "load")
        self.desc = acl.mdl.create_desc()
        check(acl.mdl.get_desc(self.desc, self.model_id), "get_desc")
        self.inputs, self.in_dataset = self.dataset(acl.mdl.get_num_inputs, acl.mdl.get_input_size_by_index)
        self.outputs, self.out_dataset = self.dataset(acl.mdl.get_num_outputs, acl.mdl.get_output_size_by_index)

    def dataset(self, count, size):
        found, dataset = [], acl.mdl.create_dataset()
        for index in range(count(self.desc)):
            nbytes = size(self.desc, index)
            address, ret = acl.rt.malloc(nbytes, ACL_MEM_MALLOC_HUGE_FIRST)
            check(ret, "malloc")
            data = acl.create_data_buffer(address, nbytes)
            _, ret = acl.mdl.add_dataset_buffer(dataset, data)
            check(ret, "add_dataset_buffer")
            found.append((address, nbytes))
        return found, dataset

    def run(self, *arrays):
        for array, (address, nbytes) in zip(arrays, self.inputs, strict=True):
            data = array.tobytes()
            ptr = acl.util.bytes_to_ptr(data)
            check(acl.rt.memcpy(address, nbytes, ptr, len(data), ACL_MEMCPY_HOST_TO_DEVICE), "memcpy")
        check(acl.mdl.execute(self.model_id, self.in_dataset, self.out_dataset), "execute")
        results = []
        for index, (address, nbytes) in enumerate(self.outputs):
            host, ret = acl.rt.malloc_host(nbytes)
            check(ret, "malloc_host")
            check(acl.rt.memcpy(host, nbytes, address, nbytes, ACL_MEMCPY_DEVICE_TO_HOST), "memcpy")
            dims, ret = acl.mdl.get_output_dims(self.desc, index)
            check(ret, "dims")
            data = acl.util.ptr_to_bytes(host, nbytes)
            results.append(np.frombuffer(data, np.float32).reshape(dims["dims"]).copy())
            check(acl.rt.free_host(host), "free_host")
        return results

    def close(self):
        check(acl.mdl.finalize_dump(), "finalize_dump")
        for dataset in (self.in_dataset, self.out_dataset):
            for index in range(acl.mdl.get_dataset_num_buffers(dataset)):
                check(acl.destroy_data_buffer(acl.mdl.get_dataset_buffer(dataset, index)), "destroy_data_buffer")
            check(acl.mdl.destroy_dataset(dataset), "destroy_dataset")
        for address, _ in self.inputs + self.outputs:
            check(acl.rt.free(address), "free")
        check(acl.mdl.destroy_desc(self.desc), "destroy_desc")
        check(acl.mdl.unload(self.model_id), "unload")
        check(acl.rt.destroy_context(self.context), "destroy_context")
        check(acl.rt.reset_device(self.device), "reset_device")
        check(acl.finalize(), "finalize")


net = Net(sys.argv[1], int(sys.argv[2]))
images = np.random.default_rng(0).standard_normal((2, 3, 8, 8), np.float32)
for _ in range(2):
    (result,) = net.run(images)
np.save("result.npy", result)
net.close()
