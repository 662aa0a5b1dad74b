// A sound case.json as text, for tests that spoil it.
#ifndef FSDPMARK_TESTS_SAMPLE_H
#define FSDPMARK_TESTS_SAMPLE_H

static const char sample_case[] =
    "{\"protocol\": 1, \"id\": \"mlp.full.n2\", \"family\": \"mlp\",\n"
    " \"layer\": \"exact\", \"world_size\": 2, \"global_rows\": 4, \"seed\": 7,\n"
    " \"model\": {\"kind\": \"mlp\", \"sizes\": [6, 8, 4], \"bias\": false, \"calls\": [0, 1], \"unused\": 0},\n"
    " \"parameters\": [\n"
    "  {\"name\": \"layers.0.weight\", \"shape\": [8, 6], \"unit\": \"layers.0\", \"tied_to\": null, \"decay\": true},\n"
    "  {\"name\": \"layers.1.weight\", \"shape\": [4, 8], \"unit\": \"layers.1\", \"tied_to\": null, \"decay\": true}],\n"
    " \"sharding\": {\"strategy\": \"full\", \"mesh\": [1, 2], \"tensor\": 1, \"pipeline\": 1, \"layout\": \"flat\", \"reshard_after_forward\": true, \"reshard_ranks\": 0,\n"
    "  \"wrap\": {\"policy\": \"block\", \"min_parameters\": 0, \"pattern\": \"\"}, \"prefetch\": {\"forward\": 0, \"backward\": 1},\n"
    "  \"offload\": \"none\", \"activation_checkpointing\": false},\n"
    " \"precision\": {\"parameter\": \"f32\", \"compute\": \"f32\", \"reduce\": \"f32\", \"optimizer_state\": \"f32\",\n"
    "  \"loss_scale\": {\"mode\": \"none\", \"initial\": 1, \"growth\": 2, \"backoff\": 0.5, \"interval\": 2000}},\n"
    " \"optimizer\": {\"kind\": \"sgd\", \"lr\": 0.5, \"momentum\": 0, \"weight_decay\": 0, \"no_decay\": false},\n"
    " \"clip\": null, \"loss\": \"sum\", \"divergent_init\": false,\n"
    " \"data\": {\"recipe\": \"exact\", \"density\": 0.6, \"std\": 0.1, \"steps\": 2, \"micros\": 1,\n"
    "  \"values\": [], \"pattern\": [1], \"init\": \"nan\", \"uneven_tokens\": false},\n"
    " \"program\": [\n"
    "  {\"verb\": \"observe\", \"label\": \"init\", \"what\": [\"param\"], \"local\": true},\n"
    "  {\"verb\": \"micro\", \"step\": 0, \"micro\": 0, \"sync\": true},\n"
    "  {\"verb\": \"step\", \"step\": 0},\n"
    "  {\"verb\": \"observe\", \"label\": \"s0\", \"what\": [\"param\"], \"local\": true},\n"
    "  {\"verb\": \"stop\"}],\n"
    " \"checkpoint\": \"/tmp/c\", \"options\": {\"fault\": \"none\"}}\n";

#endif
