"""Module paths that scripts import from MindSpore and that have no file here.

Source: modules of MindSpore 2.0.0 and 2.7.0.
"""

from __future__ import annotations

_SAME = {
    "dataset": ("engine",),
    "dataset.text": ("c_transforms", "py_transforms", "transforms", "utils"),
    "dataset.transforms": ("c_transforms", "py_transforms", "transforms"),
    "dataset.vision": ("c_transforms", "py_transforms", "transforms"),
    "experimental.optim": (
        "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd",
    ),
    "nn.layer": (
        "channel_shuffle", "combined", "dense", "rnn_cells", "rnns", "timedistributed",
    ),
    "nn.loss": ("loss",),
    "nn.optim": (
        "ada_grad", "adadelta", "adafactor", "adamax", "adasum", "asgd", "ftrl", "lamb", "lars", "lazyadam",
        "proximal_ada_grad", "rmsprop", "rprop", "sgd",
    ),
    "ops.operations": (
        "array_ops", "comm_ops", "control_ops", "custom_ops", "debug_ops", "image_ops", "inner_ops", "linalg_ops",
        "math_ops", "nn_ops", "other_ops", "random_ops", "rl_ops", "sparse_ops", "spectral_ops",
    ),
    "ops.function": (
        "array_func", "clip_func", "debug_func", "fft_func", "grad", "image_func", "linalg_func", "math_func",
        "nn_func", "other_func", "parameter_func", "random_func", "sparse_func", "sparse_unary_func", "spectral_func",
        "vmap_func",
    ),
    "ops.composite": ("base", "math_ops", "multitype_ops"),
    "hal": ("device", "event", "memory", "stream"),
    "numpy": ("array_creations", "array_ops", "logic_ops", "math_ops"),
    "communication": ("management",),
    "train.callback": (
        "_backup_and_restore", "_callback", "_checkpoint", "_early_stop", "_history", "_lambda_callback",
        "_landscape", "_loss_monitor", "_lr_scheduler_callback", "_on_request_exit", "_reduce_lr_on_plateau",
        "_summary_collector", "_time_monitor",
    ),
    "train.metrics": (
        "accuracy", "bleu_score", "confusion_matrix", "cosine_similarity", "dice", "error", "fbeta",
        "hausdorff_distance", "loss", "mean_surface_distance", "metric", "occlusion_sensitivity", "perplexity",
        "precision", "recall", "roc", "root_mean_square_surface_distance", "topk",
    ),
}  # fmt: skip

# Path -> modules whose names it shows.
OTHER_PATHS: dict[str, tuple[str, ...]] = {
    f"{source}.{name}": (source,) for source, names in _SAME.items() for name in names
}
OTHER_PATHS |= {
    "common.jit_config": ("common.api",),
    "common.lazy_inline": ("common.api",),
    "common.seed": ("common.generator",),
    "dataset.transforms.vision": ("dataset.vision",),
    "device_manager": ("context",),
    "parallel.algo_parameter_config": ("parallel_context",),
    "parallel.checkpoint_transform": ("train.sliced_checkpoints",),
    "mint.optim": ("experimental.optim.adaptive",),
    "runtime": ("hal",),
    "train.data_sink": ("train.dataset_helper",),
    "train.train_thor": ("train.convert_utils",),
    "train.summary.summary_record": ("train.summary",),
    "nn.metrics": ("train.metrics",),
    "nn.layer.embedding": ("nn.layer.basic",),
    "nn.layer.image": ("nn.layer.basic",),
    "nn.layer.math": ("nn.layer.basic",),
    "nn.dynamic_lr": ("nn.learning_rate_schedule",),
    "nn.wrap.grad_reducer": ("nn.wrap.cell_wrapper",),
    "ops.functional": ("ops.function", "ops.composite"),
    "boost.grad_accumulation": ("boost",),
}

# Module -> source -> names that MindSpore shows there too, in a module that has a file here.   "": mindspore itself
_SHOWN = {
    "ops.composite": {
        "ops": "clip_by_global_norm clip_by_value count_nonzero cummin dot matmul mm "
        "multinomial normal ones_like repeat_elements repeat_interleave sequence_mask tensor_dot uniform "
        "zeros_like"
    },
    "ops.functional": {"": "get_grad jacfwd jacrev jvp vjp"},
    "ops.operations": {"ops": "identity"},
    "ops.primitive": {"ops": "constexpr"},
    "train.model": {
        "context": "ParallelMode",
        "train": "DatasetHelper ModelCheckpoint load_checkpoint load_param_into_net save_checkpoint",
    },
}
SHOWN = {
    path: {name: source for source, names in sources.items() for name in names.split()}
    for path, sources in _SHOWN.items()
}

# Modules that real MindSpore has and msdump has not -> what to use.
NOT_HERE = {
    "dataset.audio": "Use scipy or torchaudio on arrays, in a function that map calls.",
    "nn.probability": "Write the distribution with mindspore.ops.",
    "nn.sparse": "Write it with dense tensors.",
    "parallel.auto_parallel": "Wrap the network in mindspore.parallel.AutoParallel: nothing is cut over devices here.",
    "rewrite": "Change the network in Python instead of in its source.",
    "safeguard": "Run the model as it is.",
    "scipy": "Use mindspore.ops, mindspore.numpy, or scipy on arrays.",
}

# Module -> what to use -> names of it that real MindSpore has, and that msdump leaves out: no public program uses them.
LEFT_OUT: dict[str, dict[str, frozenset[str]]] = {
    module: {hint: frozenset(names.split()) for hint, names in listed.items()}
    for module, listed in {
        "": {"Call load, and give the graph to nn.GraphCell; export writes such files.": "load_mindir save_mindir"},
        "dataset": {
            "Read the files with a GeneratorDataset of a class with __getitem__ and __len__.": "AGNewsDataset "
            "AmazonReviewDataset CSVDataset Caltech256Dataset CelebADataset CoNLL2000Dataset CocoDataset "
            "DBpediaDataset DIV2KDataset EMnistDataset EnWik9Dataset FakeImageDataset FlickrDataset Food101Dataset "
            "GTZANDataset IMDBDataset LJSpeechDataset LSUNDataset ManifestDataset Multi30kDataset OmniglotDataset "
            "PaddedDataset PennTreebankDataset Places365Dataset QMnistDataset RandomDataset RenderedSST2Dataset "
            "SQuADDataset SST2Dataset STL10Dataset SemeionDataset SogouNewsDataset SpeechCommandsDataset UDPOSDataset "
            "USPSDataset VOCDataset WikiTextDataset YahooAnswersDataset YelpReviewDataset YesNoDataset",
            "Call it from an operation of the map, or from a callback of the training.": "DSCallback",
            "Give GeneratorDataset column_names and column_types.": "Schema",
        },
        "dataset.transforms": {
            "Choose the order in a function that map calls.": "RandomOrder",
        },
        "dataset.vision": {
            "Write it with numpy or Pillow, in a function that map calls.": "AdjustGamma AutoAugment AutoAugmentPolicy "
            "BoundingBoxAugment ConvertColor ConvertMode CutOut Erase FiveCrop Grayscale HsvToRgb LinearTransformation "
            "NormalizePad PadToSize Perspective RandAugment RandomAdjustSharpness RandomAutoContrast "
            "RandomCropWithBBox RandomEqualize RandomGrayscale RandomHorizontalFlipWithBBox RandomInvert "
            "RandomLighting RandomPerspective RandomResizeWithBBox RandomResizedCropWithBBox "
            "RandomVerticalFlipWithBBox ResizeWithBBox ResizedCrop RgbToHsv TenCrop TrivialAugmentWide UniformAugment",
            "Write it with numpy, in a function that batch calls as its per_batch_map.": "CutMixBatch ImageBatchFormat "
            "MixUp MixUpBatch",
            "Read and write files with Pillow.": "encode_jpeg encode_png get_image_num_channels get_image_size "
            "write_file write_jpeg write_png",
        },
        "dataset.text": {
            "Call a function of Python, such as one of re or unicodedata, from map.": "AddToken CaseFold Ngram "
            "NormalizeUTF8 RegexReplace RegexTokenizer SlidingWindow ToNumber Truncate UnicodeScriptTokenizer",
            "Give text.PythonTokenizer a function that calls jieba or sentencepiece.": "JiebaMode JiebaTokenizer "
            "SPieceTokenizerLoadType SPieceTokenizerOutType SentencePieceModel SentencePieceTokenizer "
            "SentencePieceVocab",
            "Look the vectors up in an array, in a function that map calls.": "FastText GloVe ToVectors Vectors",
        },
        "Cell": {
            "Leave it away: one device computes all.": "flatten_weights parallel_parameter_merge_net_dict "
            "parallel_parameter_name_list parameter_layout_dict parameters_broadcast_dict remove_redundant_parameters "
            "set_boost set_broadcast_flag set_data_parallel",
            "Call the cell, or its construct.": "compile_and_run run_construct",
            "Look for it among cells_and_names() or parameters_and_names().": "check_names get_sub_cell",
            "Cast the tensors with ops.cast, or call to_float.": "cast_inputs",
            "Keep it in an attribute of your own.": "cell_init_args jit_config_dict update_cell_type",
        },
        "Tensor": {
            "Compute it with functions of mindspore.ops, and pick elements with [].": "choose cov itemset sum_to_size",
        },
        "amp": {"Call auto_mixed_precision, or to_float of the cells.": "custom_mixed_precision"},
        "common.initializer": {
            "Give initializer a Tensor that numpy has filled.": "Dirac Sparse",
        },
        "ops": {
            "Write the formula with operators and ops.assign, in an nn.Optimizer.": "ApplyAdaMax ApplyAdagradDA "
            "ApplyAddSign ApplyGradientDescent ApplyKerasMomentum ApplyPowerSign ApplyProximalAdagrad "
            "ApplyProximalGradientDescent FusedAdaFactor FusedSparseAdam FusedSparseFtrl FusedSparseLazyAdam "
            "FusedSparseProximalAdagrad LARSUpdate SparseApplyAdadelta SparseApplyAdagrad SparseApplyAdagradV2 "
            "SparseApplyFtrl SparseApplyFtrlV2 SparseApplyProximalAdagrad SparseApplyRMSProp",
            "Write the loop in Python: while and for over tensors become control flow of the graph.": "ForiLoop Scan "
            "WhileLoop",
            "Write it in Python, which a graph traces.": "ScalarCast array_to_scalar bool_and bool_eq bool_not "
            "bool_or dict_getitem dict_setitem hastype in_dict is_ is_not list_equal list_getitem list_len "
            "list_setitem make_dict make_list make_slice make_tuple not_in_dict scalar_add scalar_cast scalar_div "
            "scalar_eq scalar_floordiv scalar_ge scalar_gt scalar_le scalar_log scalar_lt scalar_mod scalar_mul "
            "scalar_ne scalar_pow scalar_sub scalar_uadd scalar_usub shape_mul string_concat string_eq tuple_equal "
            "tuple_getitem tuple_len tuple_reversed tuple_setitem typeof",
            "Draw with ops.uniform, ops.normal, ops.randperm or ops.multinomial.": "Cauchy Gamma LogNormalReverse "
            "Poisson RandomGamma RandomPoisson RandomShuffle StandardLaplace gamma laplace poisson random_gamma "
            "random_poisson shuffle standard_laplace",
            "Call ops.AllGather or ops.Broadcast.": "CollectiveGather CollectiveScatter",
            "Call ops.Conv3DTranspose.": "conv3d_transpose",
            "Compute it with other functions of mindspore.ops.": "BatchToSpace BatchToSpaceND BatchToSpaceNDV2 "
            "BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 Betainc CropAndResize "
            "DataFormatDimMap DataFormatVecPermute LRN MatrixDiagPartV3 MatrixDiagV3 MaxUnpool3D MultiMarginLoss "
            "ParallelConcat ROIAlign RaggedRange STFT SpaceToBatch SpaceToBatchND SplitV TripletMarginLoss batch_dot "
            "batch_to_space_nd bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1 "
            "block_diag cosine_embedding_loss cov crop_and_resize gaussian_nll_loss gumbel_softmax lrn matrix_diag "
            "matrix_diag_part max_pool3d max_unpool1d max_unpool3d multi_margin_loss space_to_batch_nd stft trapz "
            "triplet_margin_loss",
        },
        "numpy": {
            "Compute it with functions of mindspore.ops.": "array_equal average geomspace logspace take trapz",
        },
        "nn": {
            "Write it as an nn.Optimizer of your own, or take nn.Adam, nn.AdamWeightDecay or nn.Momentum.": "ASGD "
            "AdaFactor AdaMax AdamOffload LARS ProximalAdagrad Rprop",
            "Write it as an nn.Cell of your own, of functions of mindspore.ops.": "BiDense CentralCrop ChannelShuffle "
            "CosineEmbeddingLoss DiGamma DiceLoss FocalLoss GaussianNLLLoss IGamma ImageGradients L1Regularizer LBeta "
            "LRN LPPool1d LPPool2d MSSSIM MatrixDiag MatrixDiagPart MatrixSetDiag MaxUnpool1d MaxUnpool2d MaxUnpool3d "
            "Moments MultiClassDiceLoss MultiMarginLoss PSNR PoissonNLLLoss ReduceLogSumExp Roll SSIM "
            "RReLU Range ResizeBilinear SampledSoftmaxLoss SparseToDense TimeDistributed TripletMarginLoss Unflatten",
            "Look rows up with nn.Embedding.": "EmbeddingLookup",
            "Build it of nn.MultiheadAttention, nn.LayerNorm and nn.Dense.": "Transformer TransformerDecoder "
            "TransformerDecoderLayer",
            "Make a cell of nn.Conv2d or nn.Dense, a normalisation and the activation.": "Conv2dBnAct DenseBnAct",
            "Keep the cells in an nn.CellList, and their names beside it.": "CellDict",
            "Call mindspore.grad, value_and_grad, vjp or jvp.": "ForwardValueAndGrad Jvp Vjp WithGradCell",
            "Call Parameter.set_data.": "ParameterUpdate",
            "Give the optimizer nn.PolynomialDecayLR.": "polynomial_decay_lr",
            "Leave it away: one device computes all.": "GetNextSingleOp VirtualDatasetCellTriple",
            "Leave it away: parameters have their values at once.": "no_init_parameters",
        },
        "experimental.optim": {
            "Write it as an experimental.optim.Optimizer of your own, or take Adam, AdamW or SGD.": "ASGD Adadelta "
            "Adagrad Adamax NAdam RAdam RMSprop Rprop",
        },
        "experimental.optim.lr_scheduler": {
            "Give LambdaLR a function of the epoch.": "ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts "
            "CyclicLR ExponentialLR LinearLR MultiStepLR MultiplicativeLR PolynomialLR SequentialLR",
            'Set the group\'s "lr" when a metric has not become better.': "ReduceLROnPlateau",
        },
        "mindrecord": {"Read the rows with a dataset.MindDataset.": "FileReader"},
        "mint.nn": {
            "Write it as an nn.Cell of your own, of ops.Conv2DTranspose.": "ConvTranspose2d",
            "Take nn.BatchNorm2d or nn.BatchNorm1d, whose momentum is the part that stays.": "BatchNorm1d BatchNorm2d "
            "BatchNorm3d SyncBatchNorm",
        },
        "mint.nn.functional": {
            "Call ops.batch_norm.": "batch_norm",
            "Call ops.Conv2DTranspose.": "conv_transpose2d",
        },
        "train": {
            "Compute it in a train.Metric of your own, with scikit-learn, scipy or numpy on arrays.": "BleuScore "
            "ConfusionMatrix ConfusionMatrixMetric CosineSimilarity Dice F1 Fbeta HausdorffDistance "
            "MeanSurfaceDistance OcclusionSensitivity Perplexity ROC RootMeanSquareDistance auc",
            "Save and load with train.ModelCheckpoint and load_checkpoint.": "BackupAndRestore",
            "Give the optimizer a list of rates or an nn.LearningRateSchedule.": "LearningRateScheduler",
            "Load it with load_checkpoint, and save it in the other format.": "ckpt_to_safetensors safetensors_to_ckpt",
            "Call load_checkpoint.": "check_checkpoint load_checkpoint_async",
            "Export the network anew.": "convert_model",
            "Read standard output: ops.Print writes no file.": "parse_print",
            "Call the network with the rows of the dataset.": "connect_network_with_dataset",
            "Leave it away: one device computes all, and nothing is cut.": "build_searched_strategy "
            "merge_sliced_parameter",
            "Compute the loss beside the weights in the script: msdump draws no summaries.": "SummaryLandscape",
        },
    }.items()
}
# Modules that show the names of another one, too.
_ALSO = {"": ("train", "mindrecord"), "nn": ("train",), "parallel": ("train",)}


def left_out(module: str, name: str) -> str:
    """What to use in place of a name that is left out; "" for any other name.

    module   its path below mindspore, such as "nn" or "train.metrics.dice"; "" for mindspore itself
    """
    places = [
        ".".join(parts[: len(parts) - at]) for parts in [module.strip(".").split(".")] for at in range(len(parts))
    ]
    for place in [*places, *_ALSO.get(places[-1], ())]:
        for hint, names in LEFT_OUT.get(place, {}).items():
            if name in names:
                return hint
    return ""
