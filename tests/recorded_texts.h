/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of each kind of record, made up, with the traps that real ones have. */
#ifndef TESTS_RECORDED_TEXTS_H
#define TESTS_RECORDED_TEXTS_H

#define CACHE_HEADER                                                                               \
    "{\n\"device_name\": \"ACME GPU 1\",\n\"kernel_name\": \"saxpy\",\n\"problem_size\": [\n"      \
    "1048576\n],\n\"tune_params_keys\": [\n\"block\",\n\"vec\",\n\"ldg\",\n\"how\"\n],\n"          \
    "\"tune_params\": {\n\"block\": [\n256,\n128,\n64\n],\n\"vec\": [\n1,\n2.5\n],\n"              \
    "\"ldg\": [\nfalse,\ntrue\n],\n\"how\": [\n\"row\",\n\"a,b\"\n]\n},\n"

#define CACHE_ROW(key, knobs, rest) "\n\"" key "\": {" knobs ", " rest "},"

static const char cachefile[] = CACHE_HEADER "\"objective\": \"time\",\n\"cache\": {"
    CACHE_ROW("64,1,False,row", "\"block\": 64, \"vec\": 1, \"ldg\": false, \"how\": \"row\"",
              "\"time\": 0.25, \"times\": [0.26, 0.24], \"compile_time\": 310.5, "
              "\"verification_time\": 1.5, \"benchmark_time\": 4, \"GB/s\": 50.3, "
              "\"strategy_time\": 0, \"framework_time\": 1, "
              "\"timestamp\": \"2026-01-02 03:04:05.678901+00:00\"")
    CACHE_ROW("128,2.5,True,a,b", "\"block\": 128, \"vec\": 2.5, \"ldg\": true, \"how\": \"a,b\"",
              "\"time\": \"CompilationFailedConfig\", \"compile_time\": 95.0, \"times\": [1, 2]")
    CACHE_ROW("256,2.5,True,row", "\"block\": 256, \"vec\": 2.5, \"ldg\": true, \"how\": \"row\"",
              "\"time\": 1e20")
    CACHE_ROW("256,1,True,row", "\"block\": 256, \"vec\": 1, \"ldg\": true, \"how\": \"row\"",
              "\"__error__\": \"InvalidConfig\", \"GB/s\": 3")
    CACHE_ROW("64,1,True,row", "\"block\": 64, \"vec\": 1, \"ldg\": true, \"how\": \"row\"",
              "\"time\": NaN, \"times\": []")
    CACHE_ROW("128,1,False,row", "\"block\": 128, \"vec\": 1, \"ldg\": false, \"how\": \"row\"",
              "\"time\": 0.125, \"times\": [[0, 0.25], [0, 0.25]], \"temperatures\": [40, 41.5]");

static const char t4_file[] =
    "{\"schema_version\":\"1.0.0\",\"metadata\":{\"timeunit\":\"seconds\"},\n\"results\":[\n"
    "{\"timestamp\":\"2026-01-02 03:04:05+00:00\",\"configuration\":{\"BX\":128,\"UNROLL\":2},\n"
    "\"times\":{\"compilation\":0.3105,\"framework\":0.0007,\"search_algorithm\":0,"
    "\"validation\":0.0012,\"runtimes\":[0.00026,0.00024]},\"invalidity\":\"correct\","
    "\"correctness\":1,\"measurements\":[{\"name\":\"time\",\"value\":0.00025,\"unit\":\"\"},"
    "{\"name\":\"nvml_energy\",\"value\":1.7,\"unit\":\"J\"}],\"objectives\":[\"time\"]},\n"
    "{\"configuration\":{\"BX\":64,\"UNROLL\":4},\"times\":{\"compilation_time\":0.095},"
    "\"invalidity\":\"compile\",\"correctness\":0,\"measurements\":[{\"name\":\"time\","
    "\"value\":\"CompilationFailedConfig\",\"unit\":\"\"}],\"objectives\":[\"time\"]},\n"
    "{\"configuration\":{\"BX\":64},\"times\":{\"runtimes\":[0.002,0.004]},"
    "\"invalidity\":\"correct\",\"correctness\":1,\"measurements\":[],\"objectives\":[\"time\"]},\n"
    "{\"configuration\":{\"UNROLL\":4,\"BX\":128},\"times\":{},\"invalidity\":\"correctness\","
    "\"correctness\":0}\n]}\n";

#define KTT_RUN(x, y, status, us)                                                                  \
    "{\"ComputationResults\":[{\"CompilationData\":{\"RegistersCount\":66},\"Duration\":" us       \
    ",\"ProfilingData\":{\"Counters\":[{\"Name\":\"dram.sum\",\"Type\":\"Int\",\"Value\":7}]}}],"  \
    "\"Configuration\":[{\"Name\":\"X\",\"Value\":" x ",\"ValueType\":\"UnsignedInt\"},{\"Name\":" \
    "\"MODE\",\"Value\":" y ",\"ValueType\":\"String\"}],\"DataMovementOverhead\":1000.0,"         \
    "\"ExtraDuration\":0.0,\"KernelName\":\"k\",\"SearcherOverhead\":500.0,\"Status\":\"" status   \
    "\",\"TotalDuration\":" us ",\"TotalOverhead\":10000.0,\"ValidationOverhead\":500.0}"

static const char ktt_file[] =
    "{\"Metadata\":{\"Device\":\"ACME\",\"TimeUnit\":\"Microseconds\"},\"Results\":[" KTT_RUN(
        "16", "\"fast\"", "Ok", "1000.0") "," KTT_RUN("16", "\"fast\"", "Ok", "3000.0") ","
    KTT_RUN("8", "\"fast\"", "ValidationFailed", "0.0") ","
    KTT_RUN("8", "\"slow\"", "Ok", "5000.0") "]}";

static const char autotvm_log[] =
    "# a comment\n"
    "{\"input\":[\"cuda -keys=cuda,gpu\",\"matmul\",[[\"TENSOR\",[512,512],\"float32\"]],{}],"
    "\"config\":{\"index\":77,\"code_hash\":null,\"entity\":[[\"tile_y\",\"sp\",[-1, 8, 2]],"
    "[\"unroll\",\"ot\",512]]},\"result\":[[0.0002,0.0004],0,1.5,1679025762.5],\"version\":0.2}\n"
    "{\"input\":[\"cuda -keys=cuda,gpu\",\"matmul\",[[\"TENSOR\",[512,512],\"float32\"]],{}],"
    "\"config\":{\"index\":78,\"entity\":[[\"tile_y\",\"sp\",[-1,4,2]],[\"unroll\",\"ot\",0]]},"
    "\"result\":[[1e9],6,10.0,1679025763],\"version\":0.2}\n"
    "{\"i\":[\"llvm\",\"dense\",[1],{},[\"dense\",1],{\"i\":3,\"t\":\"\",\"c\":null,\"e\":"
    "[[\"tile_y\",\"sp\",[4,2]]]}],\"r\":[[0.001],0,2.0,1.0],\"v\":0.1}\n"
    "{\"input\":[\"cuda\",\"mat";

static const char ansor_log[] =
    "{\"i\": [[\"[\\\"matmul_layer\\\", 64]\", \"llvm -keys=cpu\", [8], \"\", 1, []], [[], "
    "[[\"SP\", 2, 0, 1024, [4, 2, 16], 1], [\"SP\", 2, 0, 8, [8], 1], [\"AN\", 2, 0, 3], "
    "[\"PR\", 2, 0, \"auto_unroll_max_step$64\"]]]], \"r\": [[0.00213, 0.00215], 0, 0.89, 17000]}\n"
    "{\"i\": [[\"[\\\"matmul_layer\\\", 64]\", \"llvm -keys=cpu\", [8], \"\", 1, []], [[], "
    "[[\"SP\", 2, 0, 1024, [4, 4, 16], 1], [\"PR\", 2, 0, \"auto_unroll_max_step$16\"]]]], "
    "\"r\": [[1e10], 4, 0.5, 17001], \"v\": \"v0.6\"}\n";

static const char metaschedule_records[] =
    "[0,[[[[\"GetBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"SamplePerfectTile\",[\"l2\"],[4,64],"
    "[\"v5\"]],[\"SampleCategorical\",[],[[0,16,64,512],[0.25,0.25,0.25,0.25]],[\"v13\"]],"
    "[\"EnterPostproc\",[],[],[]],[\"Unannotate\",[\"b1\"],[],[]]],[[1,[4,8,2,2]],[2,2]]],"
    "[0.00021,0.00023],{\"kind\":\"llvm\"},[[\"TENSOR\",\"float32\",[128,128]]]]]\n"
    "[1,[[[[\"SamplePerfectTile\",[\"l2\"],[4,64],[\"v5\"]]],[[0,[4,8,2,2]]]],[1e10],"
    "{\"kind\":\"llvm\"},[]]]\n"
    "[0,[[[[\"GetBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"SamplePerfectTile\",[\"l2\"],[4,64],"
    "[\"v5\"]],[\"SampleCategorical\",[],[[0,16,64,512],[0.25,0.25,0.25,0.25]],[\"v13\"]]],"
    "[[1,[2,16,2,2]],[2,0]]],null,{\"kind\":\"llvm\"},[]]]\n";

#endif
