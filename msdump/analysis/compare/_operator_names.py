"""Names of operators: one row for those that compute the same.

    kind: MindSpore and GE | ATen without overloads, which is what msprobe calls them | ONNX

A dash stands for none. A row may go on in the next line, which is indented.
"""

COMPUTING = """
abs: Abs | abs | Abs
acos: ACos Acos | acos arccos | Acos
acosh: Acosh | acosh arccosh | Acosh
adaptive_avg_pool: AdaptiveAvgPool2D AdaptiveAvgPool3D | _adaptive_avg_pool2d adaptive_avg_pool2d
    _adaptive_avg_pool3d | GlobalAveragePool
adaptive_max_pool: AdaptiveMaxPool2D | adaptive_max_pool2d | GlobalMaxPool
add: Add TensorAdd AddV2 Adds | add add_ | Add
add_n: AddN AccumulateNV2 | - | Sum
addcdiv: Addcdiv | addcdiv addcdiv_ | -
addcmul: Addcmul | addcmul addcmul_ | -
affine_grid: AffineGrid | affine_grid_generator | AffineGrid
all: ReduceAll | all | -
amax: ReduceMax AMax | amax | ReduceMax
amin: ReduceMin AMin | amin | ReduceMin
any: ReduceAny | any | -
arange: Range | arange | Range
argmax: Argmax ArgMaxWithValue ArgMax ArgMaxV2 | argmax | ArgMax
argmin: Argmin ArgMinWithValue ArgMin | argmin | ArgMin
asin: Asin | asin arcsin | Asin
asinh: Asinh | asinh arcsinh | Asinh
atan: Atan | atan arctan | Atan
atan2: Atan2 | atan2 arctan2 | -
atanh: Atanh | atanh arctanh | Atanh
attention: FlashAttentionScore PromptFlashAttention FusedInferAttentionScore | scaled_dot_product_attention
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_attention_math
    _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention | Attention MultiHeadAttention
avg_pool: AvgPool AvgPool3D AvgPoolV2 | avg_pool2d avg_pool3d avg_pool1d | AveragePool
batch_matmul: BatchMatMul BatchMatMulV2 | bmm baddbmm | -
batch_norm: BatchNorm BNInference BNTrainingUpdate BatchNormWithActivation InstanceNormV2 | native_batch_norm
    _native_batch_norm_legit cudnn_batch_norm batch_norm _batch_norm_impl_index _native_batch_norm_legit_no_training
    _native_batch_norm_legit_functional | BatchNormalization
batch_norm_grad: BatchNormGrad | native_batch_norm_backward cudnn_batch_norm_backward | -
bce: BinaryCrossEntropy | binary_cross_entropy | -
bce_grad: BinaryCrossEntropyGrad | binary_cross_entropy_backward | -
bce_with_logits: BCEWithLogitsLoss SigmoidCrossEntropyWithLogits SigmoidCrossEntropyWithLogitsV2 |
    binary_cross_entropy_with_logits | -
bias_add: BiasAdd | - | -
bias_add_grad: BiasAddGrad | - | -
bitwise_and: BitwiseAnd | bitwise_and __and__ | BitwiseAnd
bitwise_not: Invert | bitwise_not | BitwiseNot
bitwise_or: BitwiseOr | bitwise_or __or__ | BitwiseOr
bitwise_xor: BitwiseXor | bitwise_xor | BitwiseXor
ceil: Ceil | ceil | Ceil
celu: CeLU CeluV2 | celu | Celu
clamp: ClipByValue ClampTensor ClampScalar | clamp clamp_ clip hardtanh | Clip
clamp_max: Minimum | clamp_max minimum | Min
clamp_min: Maximum | clamp_min maximum | Max
col2im: Col2Im | col2im | Col2Im
complex: Complex | complex | -
conj: Conj | conj _conj | -
conv: Conv2D Conv3D Conv2DV2 Convolution DepthwiseConv2dNative DepthwiseConv2D | convolution conv2d conv1d conv3d
    mkldnn_convolution cudnn_convolution _convolution | Conv
conv_grad_input: Conv2DBackpropInput Conv3DBackpropInput | - | -
conv_grad_weight: Conv2DBackpropFilter Conv3DBackpropFilter | - | -
conv_transpose: Conv2DTranspose Conv3DTranspose | conv_transpose2d conv_transpose1d conv_transpose3d | ConvTranspose
cos: Cos | cos | Cos
cosh: Cosh | cosh | Cosh
cross_entropy: SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits CrossEntropyLoss | cross_entropy
    cross_entropy_loss | SoftmaxCrossEntropyLoss
ctc_loss: CTCLoss CTCLossV2 | _ctc_loss ctc_loss | -
cummax: Cummax | cummax | -
cummin: Cummin | cummin | -
cumprod: CumProd Cumprod | cumprod | CumProd
cumsum: CumSum Cumsum | cumsum | CumSum
det: MatrixDeterminant | _linalg_det linalg_det det | Det
div: Div RealDiv DivNoNan Xdivy | div div_ true_divide | Div
dropout: Dropout DropoutDoMask Dropout2D Dropout3D | native_dropout dropout bernoulli_ bernoulli | Dropout
elu: Elu | elu | Elu
embedding: EmbeddingLookup Gather GatherV2 GatherD | embedding index_select gather index | Gather GatherElements
    GatherND
embedding_grad: UnsortedSegmentSum EmbeddingDenseGrad | embedding_dense_backward index_add index_put
    _index_put_impl_ scatter_add | ScatterElements ScatterND
eq: Equal | eq | Equal
erf: Erf | erf | Erf
erfc: Erfc | erfc | -
erfinv: Erfinv | erfinv | -
exp: Exp | exp exp_ | Exp
exp2: Exp2 | exp2 | -
expm1: Expm1 | expm1 | -
eye: Eye | eye | EyeLike
fft: FFTWithSize FFT | _fft_c2c _fft_r2c _fft_c2r fft_fft | DFT
floor: Floor | floor floor_ | Floor
floor_div: FloorDiv | floor_divide | -
fmod: Mod TruncateMod | fmod | Mod
ge: GreaterEqual | ge | GreaterOrEqual
gelu: GeLU GELU Gelu GeluExt GeluV2 FastGeLU | gelu | Gelu
gelu_grad: GeLUGrad GeluGrad GeluGradExt GeluGradV2 | gelu_backward | -
glu: GLU GluV2 | glu | -
grid_sample: GridSampler2D GridSampler3D | grid_sampler_2d grid_sampler grid_sampler_3d | GridSample
group_norm: GroupNorm | native_group_norm group_norm | GroupNormalization InstanceNormalization
gru: DynamicGRUV2 GRUV2 CudnnGRU | gru | GRU
gt: Greater | gt | Greater
hard_shrink: HShrink | hardshrink | Shrink
hardsigmoid: HSigmoid HardSigmoid | hardsigmoid | HardSigmoid
hardswish: HSwish HardSwish | hardswish hardswish_ | HardSwish
huber_loss: HuberLoss | huber_loss | -
im2col: Im2Col Unfold | im2col | -
isfinite: IsFinite | isfinite | -
isinf: IsInf | isinf | IsInf
isnan: IsNan | isnan | IsNaN
kl_div: KLDivLoss | kl_div | -
l1_loss: L1Loss | l1_loss | -
layer_norm: LayerNorm LayerNormExt LayerNormV3 LayerNormV4 | native_layer_norm layer_norm | LayerNormalization
layer_norm_grad: LayerNormGrad LayerNormGradExt LayerNormGradV3 | native_layer_norm_backward | -
le: LessEqual | le | LessOrEqual
leaky_relu: LeakyReLU LeakyReluV2 LeakyRelu | leaky_relu leaky_relu_ | LeakyRelu
leaky_relu_grad: LeakyReluGrad | leaky_relu_backward | -
lerp: Lerp LerpScalar | lerp lerp_ | -
lgamma: Lgamma | lgamma | -
linear: FullyConnection Dense | addmm linear | Gemm
linspace: LinSpace | linspace | -
log: Log | log log_ | Log
log10: Log10 | log10 | -
log1p: Log1p | log1p | -
log2: Log2 | log2 | -
log_softmax: LogSoftmax LogSoftmaxExt LogSoftmaxV2 | _log_softmax log_softmax | LogSoftmax
log_softmax_grad: LogSoftmaxGrad | _log_softmax_backward_data | -
logical_and: LogicalAnd | logical_and logical_and_ | And
logical_not: LogicalNot | logical_not logical_not_ | Not
logical_or: LogicalOr | logical_or logical_or_ | Or
logical_xor: LogicalXor | logical_xor | Xor
logsigmoid: LogSigmoid | log_sigmoid_forward logsigmoid | -
logsumexp: ReduceLogSumExp LogSumExp | logsumexp | ReduceLogSumExp
lrn: LRN | local_response_norm | LRN
lstm: LSTM LSTMV2 DynamicRNN CudnnLSTM BasicLSTMCell | lstm _thnn_fused_lstm_cell mkldnn_rnn_layer | LSTM
lt: Less | lt | Less
masked_fill: MaskedFill | masked_fill masked_fill_ | -
matmul: MatMul MatMulV2 MatMulExt Mm | mm matmul mv dot | MatMul
max: Max | max | -
max_pool: MaxPool MaxPoolWithArgmax MaxPoolWithArgmaxV2 MaxPool3D MaxPoolV3 | max_pool2d_with_indices max_pool2d
    max_pool3d_with_indices max_pool1d | MaxPool
max_pool_grad: MaxPoolGrad MaxPoolGradWithArgmax | max_pool2d_with_indices_backward | -
mean: ReduceMean MeanExt | mean | ReduceMean
median: Median MedianExt | median | -
mish: Mish | mish | Mish
mse_loss: MSELossExt MseLoss | mse_loss | -
mse_loss_grad: MSELossGradExt MseLossGrad | mse_loss_backward | -
mul: Mul Muls | mul mul_ | Mul
nan_to_num: NanToNum | nan_to_num | -
ne: NotEqual | ne | -
neg: Neg | neg neg_ | Neg
nll_loss: NLLLoss NLLLossExt | nll_loss_forward nll_loss nll_loss2d_forward | NegativeLogLikelihoodLoss
nll_loss_grad: NLLLossGrad | nll_loss_backward nll_loss2d_backward | -
norm: LpNorm Norm | linalg_vector_norm norm frobenius_norm | ReduceL2 ReduceL1 LpNormalization
normalize: L2Normalize | normalize | -
one_hot: OneHot OneHotExt | one_hot | OneHot
pad: PadV3 Pad ConstantPadND MirrorPad ReflectionPad1D ReflectionPad2D ReplicationPad2D | constant_pad_nd pad
    reflection_pad2d replication_pad2d reflection_pad1d | Pad
pow: Pow PowTensorScalar PowScalarTensor Square | pow pow_ square square_ | Pow
prelu: PReLU | _prelu_kernel prelu | PRelu
prod: ReduceProd ProdExt | prod | ReduceProd
random: StandardNormal StandardLaplace UniformReal RandomNormal | randn rand normal_ uniform_ normal uniform randint
    random_ randperm | RandomNormal RandomUniform RandomNormalLike
range_mod: FloorMod | remainder | -
reciprocal: Reciprocal Inv | reciprocal reciprocal_ | Reciprocal
relu: ReLU Relu ReluV2 | relu relu_ | Relu
relu6: ReLU6 Relu6 | relu6 | -
relu_grad: ReluGrad ReLUGrad | threshold_backward | -
resize: ResizeBilinear ResizeBilinearV2 ResizeNearestNeighbor ResizeNearestNeighborV2 UpsampleBilinear2D
    UpsampleNearest2D ResizeBicubic | upsample_bilinear2d upsample_nearest2d upsample_bicubic2d interpolate
    upsample_linear1d upsample_nearest1d _upsample_bilinear2d_aa | Resize Upsample
rms_norm: RmsNorm | rms_norm _fused_rms_norm | RMSNormalization SimplifiedLayerNormalization
rnn: RNNTanh | rnn_tanh rnn_relu | RNN
roll: Roll | roll | -
round: Rint Round | round | Round
rsqrt: Rsqrt | rsqrt rsqrt_ | -
scatter: TensorScatterUpdate TensorScatterElements ScatterNd | scatter scatter_ slice_scatter select_scatter |
    Scatter
searchsorted: SearchSorted | searchsorted | -
selu: SeLU | selu | Selu
sgd: SGD ApplyGradientDescent | _fused_sgd_ | -
sigmoid: Sigmoid | sigmoid sigmoid_ | Sigmoid
sigmoid_grad: SigmoidGrad | sigmoid_backward | -
sign: Sign | sign sgn | Sign
silu: SiLU Swish | silu silu_ | Swish
silu_grad: SiLUGrad | silu_backward | -
sin: Sin | sin | Sin
sinc: Sinc | sinc | -
sinh: Sinh | sinh | Sinh
smooth_l1_loss: SmoothL1Loss | smooth_l1_loss | -
soft_shrink: SoftShrink | softshrink | -
softmax: Softmax SoftmaxV2 | _softmax softmax _safe_softmax | Softmax
softmax_grad: SoftmaxGrad SoftmaxBackward | _softmax_backward_data | -
softplus: Softplus SoftplusExt SoftplusV2 | softplus | Softplus
softsign: Softsign | softsign | Softsign
sort: Sort SortExt | sort | -
sqrt: Sqrt | sqrt sqrt_ | Sqrt
sqrt_grad: SqrtGrad | - | -
std: ReduceStd Std | std std_mean | -
sub: Sub | sub sub_ rsub | Sub
sum: ReduceSum SumExt | sum | ReduceSum
sum_square: SquareSumAll SquareSumV1 | - | ReduceSumSquare
tan: Tan | tan | Tan
tanh: Tanh | tanh tanh_ | Tanh
tanh_grad: TanhGrad | tanh_backward | -
threshold: ThresholdedRelu Threshold | threshold | ThresholdedRelu
top_k: TopK TopKV2 | topk | TopK
trace: Trace | trace | -
tril: Tril | tril tril_ | Trilu
triu: Triu | triu triu_ | -
trunc: Trunc | trunc | -
unique: Unique Unique2 | _unique2 unique_dim | Unique
var: ReduceVar Var | var var_mean | -
where: Select SelectV2 | where | Where
"""
# What shows, copies, casts or fills. Nothing is computed, and no framework needs the same of them.
MOVING = """
cast: Cast TensorCast | _to_copy to | Cast CastLike
concat: Concat ConcatD ConcatV2 | cat concat hstack vstack | Concat
copy: Identity Depend Load StopGradient TransData TensorMove Contiguous Assign UpdateState Copy | alias detach
    detach_ clone copy_ lift_fresh lift lift_fresh_copy contiguous set_ pin_memory _pin_memory _conj_copy | Identity
expand: BroadcastTo Tile BroadcastToD TileD Expand Repeat | expand expand_as repeat broadcast_to expand_copy |
    Expand Tile
fill: Fill FillV2 FillScalar FillTensor OnesLike Ones ZerosLike Zeros | empty empty_like empty_strided new_empty
    new_empty_strided zeros ones full fill_ zero_ zeros_like ones_like full_like new_zeros new_ones new_full
    scalar_tensor tensor resize_ | ConstantOfShape Constant
reshape: Reshape ExpandDims Squeeze Flatten View ReshapeExt Unsqueeze | view _unsafe_view reshape _reshape_alias
    squeeze unsqueeze squeeze_ unsqueeze_ flatten view_as unflatten | Reshape Squeeze Unsqueeze Flatten
shape: TensorShape Shape Size Dtype Rank | is_same_size _local_scalar_dense item | Shape Size
slice: Slice StridedSlice SliceExt Narrow SelectExt StridedSliceGrad | slice select narrow as_strided slice_backward
    select_backward diagonal | Slice
split: Split SplitV SplitD Unstack Unpack Chunk | split split_with_sizes chunk unbind unsafe_split | Split
stack: Stack Pack | stack | -
transpose: Transpose TransposeExtView | t transpose transpose_ permute movedim swapaxes numpy_T T mT | Transpose
tuple: MakeTuple TupleGetItem Data Const Variable NetOutput | - | -
"""

# What the arguments of ATen's operators are called, where dumps show numbers among them.
ARGUMENTS = """
_log_softmax: self dim half_to_float
_softmax: self dim half_to_float
add.Tensor: self other
addmm: self mat1 mat2
arange: end
argmax: self dim keepdim
cat: tensors dim
clamp: self min max
convolution: input weight bias stride padding dilation transposed output_padding groups
cumsum: self dim
div.Tensor: self other
elu: self alpha scale input_scale
embedding: weight indices padding_idx
gelu: self
leaky_relu: self negative_slope
mean.dim: self dim keepdim
mul.Tensor: self other
native_batch_norm: input weight bias running_mean running_var training momentum eps
native_group_norm: input weight bias N C HxW group eps
native_layer_norm: input normalized_shape weight bias eps
pow.Tensor_Scalar: self exponent
select.int: self dim index
slice.Tensor: self dim start end step
softplus: self beta threshold
sub.Tensor: self other
sum.dim_IntList: self dim keepdim
transpose.int: self dim0 dim1
unsqueeze: self dim
"""
