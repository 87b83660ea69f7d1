"""The same in pyACL's own calls, as a program for a device has them: one picture at a time, then one operator.

msdump run infer_pyacl.py digits.onnx acl.json [COUNT]
"""

import sys

import acl
import numpy as np


def check(ret):
    """Raise when a call did not return 0."""
    if ret != 0:
        raise RuntimeError(f"ACL returned {ret}: {acl.get_recent_err_msg()}")


def made(result):
    """What a call made that returns it with a code."""
    value, ret = result
    check(ret)
    return value


def make_buffer(size):
    """A buffer in a device's memory, and its address."""
    address = made(acl.rt.malloc(size, acl.const.ACL_MEM_MALLOC_HUGE_FIRST))
    return acl.create_data_buffer(address, size), address


def free_buffer(buffer, address):
    acl.destroy_data_buffer(buffer)
    check(acl.rt.free(address))


class Model:
    """A loaded model with the buffers of its only input and its only output, for one picture."""

    def __init__(self, path, picture, dtype):
        self.model_id = made(acl.mdl.load_from_file(path))
        self.dtype = dtype
        self.buffers = [make_buffer(picture.nbytes), make_buffer(10 * np.dtype(dtype).itemsize)]
        self.datasets = [acl.mdl.create_dataset() for _ in self.buffers]
        for dataset, (buffer, _) in zip(self.datasets, self.buffers, strict=True):
            made(acl.mdl.add_dataset_buffer(dataset, buffer))
        # The sizes of the input are open in the model.
        self.desc = acl.create_tensor_desc(acl.const.ACL_UINT8, [1, *picture.shape], acl.const.ACL_FORMAT_ND)
        made(acl.mdl.set_dataset_tensor_desc(self.datasets[0], self.desc, 0))

    def __call__(self, picture):
        (_, address), (_, result) = self.buffers
        content = picture.tobytes()
        check(acl.rt.memcpy(address, len(content), acl.util.bytes_to_ptr(content), len(content),
                            acl.const.ACL_MEMCPY_HOST_TO_DEVICE))  # fmt: skip
        check(acl.mdl.execute(self.model_id, *self.datasets))
        return np.frombuffer(acl.util.ptr_to_bytes(result, 10 * np.dtype(self.dtype).itemsize), self.dtype)

    def close(self):
        acl.destroy_tensor_desc(self.desc)
        for dataset, buffer in zip(self.datasets, self.buffers, strict=True):
            check(acl.mdl.destroy_dataset(dataset))
            free_buffer(*buffer)
        check(acl.mdl.unload(self.model_id))


def softmax(logits):
    """One operator, called by itself."""
    desc = acl.create_tensor_desc(acl.const.ACL_FLOAT, [len(logits)], acl.const.ACL_FORMAT_ND)
    attributes = acl.op.create_attr()
    check(acl.op.set_attr_int(attributes, "axis", 0))
    source, result = make_buffer(logits.nbytes), make_buffer(logits.nbytes)
    content = logits.tobytes()
    check(acl.rt.memcpy(source[1], len(content), acl.util.bytes_to_ptr(content), len(content),
                        acl.const.ACL_MEMCPY_HOST_TO_DEVICE))  # fmt: skip
    check(acl.op.execute_v2("Softmax", [desc], [source[0]], [desc], [result[0]], attributes, 0))
    check(acl.rt.synchronize_stream(0))
    found = np.frombuffer(acl.util.ptr_to_bytes(result[1], len(content)), np.float32)
    for buffer in (source, result):
        free_buffer(*buffer)
    acl.op.destroy_attr(attributes)
    acl.destroy_tensor_desc(desc)
    return found


def main():
    path, config = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    pictures, labels = np.load("pictures.npy")[:count], np.load("labels.npy")[:count]
    check(acl.init())
    check(acl.rt.set_device(0))
    check(acl.mdl.init_dump())
    check(acl.mdl.set_dump(config))
    model = Model(path, pictures[0], np.float16 if "fp16" in path else np.float32)
    found = [int(model(picture).argmax()) for picture in pictures]
    print(f"{np.sum(found == labels)} of {count} are right")
    print(f"softmax by itself: {softmax(np.arange(3, dtype=np.float32)).round(3)}")
    check(acl.mdl.finalize_dump())
    model.close()
    check(acl.rt.reset_device(0))
    check(acl.finalize())


if __name__ == "__main__":
    main()
