"""Write the handwritten digits of scikit-learn as a CIFAR-10 binary folder, once.

python make_digits.py [FOLDER]
"""

import sys

from msdump.errors import MsdumpError
from msdump.mindspore.dataset.digits import write_digits_as_cifar10

if __name__ == "__main__":
    try:
        print(write_digits_as_cifar10(sys.argv[1] if len(sys.argv) > 1 else "datasets/digits"))
    except MsdumpError as error:
        sys.exit(str(error))
