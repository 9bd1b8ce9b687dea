"""No second copy: what pages and benchmarks define stands here, with what it is checked against.

A function that does what a reference does is the reference, or is compared with it in
`test_same_as_references.py` ("compared"). A measure names the test that checks it, or the second
computation in `benchmarks/second/`. For the rest a word says why there is no reference.
"""

import ast
import re

import pytest
from second_copies import ROOT, definitions

WORDS = {
    "data": "makes, reads, cuts or counts data",
    "drawing": "draws, or makes text of numbers",
    "calls": "hands its inputs to a reference or to torch, and does nothing else",
    "training": "a model made of references and of torch's layers, or how it is trained and tested",
    "wrong": "wrong on purpose",
    "machine": "measures time or memory of the machine",
    "asserted": "is compared with torch where it stands, and fails there",
}
FILES = {
    "01_kernel_regression": {
        "compared": "rms around_the_clock squared_distances dot_product_score by_rows",
        "data": "true_temperature all_equal",
        "training": "learn_bandwidth",
        "wrong": "wrong_softmax",
        "second/kernels.py": "scored promise_and_finding",
        "test_kernel_regression_page.py": "line_error",
    },
    "02_attention_scoring": {
        "compared": "with_a_pencil pencilled fused rowwise bilinear_variance",
        "asserted": "output_and_gradients",
        "data": "lay_out",
        "drawing": "told",
        "training": "ways_down learn_digits",
        "wrong": "wrong_scale outcomes",
        "machine": "kept_bytes milliseconds",
        "test_attention_scoring_page.py": "saturation fetch without_the_number",
    },
    "03_multi_head": {
        "compared": "looped einsummed fused rows cut join variant both_right parted songs "
        "merge_heads",
        "asserted": "compared",
        "data": "split",
        "drawing": "draw_grid draw_heads still_place",
        "training": "WhoAndHow Guesser PlaceByPlace Unseeing trained pruned trained_listener "
        "measure_listeners deceived measure_pruning",
        "wrong": "wrong_split straight_cut straight_join",
        "second/letters.py": "accuracy BlankAsks measure_heads slopes",
        "test_heads.py": "ValuesPerPlace Blind Scrambled",
    },
    "04_masking": {
        "compared": "average_of divided_again in_chunks off_by work hidden_weight fused ours "
        "of_block",
        "calls": "of_module outputs_of",
        "data": "ways_to_cut padded_share",
        "drawing": "draw_mask answer",
        "training": "learn_digits",
        "wrong": "wrong_masking divided_too_early of_infinity two_layers",
        "machine": "tokens_per_second",
        "test_masking.py": "ask",
        "test_masking_page.py": "three_layers",
    },
    "05_positional_encoding": {
        "compared": "turned_score outputs_from squeezed table_of best_step in_halves",
        "calls": "alone to_the_past",
        "data": "two_back",
        "drawing": "hand",
        "training": "trained find_nearer measure_squeezed",
        "wrong": "along_the_batch wrong_distances",
        "second/far_marks.py": "Finder tested",
        "second/two_back.py": "learn",
        "test_distances.py": "two_marks with_squeezed_positions",
    },
    "06_residual_layernorm": {
        "compared": "ByHand SelfAttention Stack lessons",
        "calls": "moved_by causal",
        "training": "network adding Bare",
        "wrong": "along_positions wrong_norm",
        "machine": "hidden_at_once kept shortest_times",
        "second/deep_stacks.py": "through stacked beginning first_gradients size_on_top stirred",
    },
    "07_transformer": {
        "compared": "moved kind through count",
        "asserted": "copy_layer",
        "calls": "logits memory rate read written beams measure_months measure_beams measure_doubt "
        "is_date",
        "data": "numbered Pencil pencilled pattern_of orders_of",
        "drawing": "chances beside_the_right shared cell most stop",
        "training": "exact_match learn translator translated",
        "wrong": "wrong_loss",
        "second/dates_by_rules.py": "read_by_pattern",
        "second/finished_translator.py": "cross_weights month_is_right",
        "test_transformer_claims.py": "letters_of_month",
        "test_live_models.py": "without",
    },
    "08_recurrence_convolution": {
        "compared": "attention window last_seen",
        "asserted": "off states_of carried",
        "data": "to_copy",
        "drawing": "mixed panel ends crosses",
        "calls": "plain orthogonal gru open_gru",
        "training": "OneLook copier copied recall measure_copying",
        "wrong": "wrong_convolution",
        "machine": "multiplications longest_chain Largest",
        "second/first_digit.py": "gradient_back first_digit",
        "test_sequence_models.py": "share",
    },
    "09_language_model": {
        "compared": "encode decode log_p beam held_out",
        "asserted": "from_torch frequencies_of",
        "calls": "size_of write matrices look_back bare",
        "training": "learn",
        "data": "as_bytes parts_of stream windows joined in_pieces_of decode_pieces",
        "drawing": "as_shown tell",
        "wrong": "wrong_next_token_loss",
        "machine": "milliseconds kept_bytes",
        "second/counted_tokens.py": "by_topic lead_by_topics",
        "second/circles.py": "given_to_what_came_next",
        "second/greedy.py": "short_training wrongly plain measure_copier measure_temperature "
        "gain_of",
        "test_language_model_page.py": "bits_of counted",
    },
    "10_bert": {
        "compared": "ranks rank_correlation with_weights without by_counting",
        "asserted": "from_torch",
        "calls": "size_of fill_in",
        "data": "plain ids_of text_of framed rows_of windows gaps_of with_gaps word_lengths "
        "held_out_topics",
        "drawing": "word print_errors agreement_panel label_ends finish",
        "training": "Bert fit untrained trained learn filled one_by_one short_training mean_moves "
        "measure_outputs measure_replaced measure_probes",
        "wrong": "wrong_relevance",
        "second/bert_controls.py": "with_output",
        "second/rollout.py": "looked_into occlusion explained agreement",
        "second/word_length.py": "read_off probed",
        "second/typing_errors.py": "mistyped unlikely fine_tuned",
        "test_bert_page.py": "neighbours by_tables times_seen rollout wrong_rollout window "
        "slope_times_change",
        "test_fine_tuning_page.py": "over_seeds_and_topics",
    },
    "11_vision_transformer": {
        "compared": "moved covered maps ranks distances likeness",
        "calls": "size_of",
        "data": "fold eight_moves of on_letters gaps_of alike_in",
        "drawing": "told_as beside dots table_of_gaps",
        "training": "nearest vit cnn trained learn right",
        "wrong": "wrong_patch_means",
        "second/empty_margin.py": "told agreement",
        "test_vision_transformer_page.py": "interval by_slopes",
    },
    "12_captioning": {
        "calls": "captions looks_at",
        "data": "of letter_and_mark box partly_covered kind",
        "drawing": "told table in_lines ink steps drawn",
        "wrong": "wrong_contrast",
        "test_captioning_page.py": "cut_in_two",
    },
    "bert.py": {
        "calls": "interval measured baselines main",
        "second/trained_longer.py": "longer",
    },
    "bugs.py": {
        "wrong": "mistake Misattention wrong_scale mask_leaks cosine_exponent no_root_d_model "
        "no_residual norm_over_the_sequence",
        "training": "train train_on fit main",
        "test_bugs.py": "floor",
    },
    "caption_rivals.py": {
        "training": "Heads projections",
        "data": "of_a_kind",
        "second/pasted_marks.py": "closest marks_on_letters nearness",
    },
    "caption_scores.py": {
        "calls": "recalls",
        "data": "parsed",
        "second/pasted_marks.py": "share",
        "test_captioner.py": "marks_of",
    },
    "captions.py": {
        "calls": "losses captions retrieval",
        "data": "collection parts_of batches one_each run_of write",
        "training": "descend captioner classifier nearest pasted with_projections matching main",
        "second/pasted_marks.py": "gaze",
        "test_captioner.py": "tried",
    },
    "checkpoints.py": {"data": "run_page", "training": "train_and_save measure_and_save main"},
    "command_line.py": {"data": "options"},
    "decoding.py": {"compared": "CachedDecoder check_parity", "machine": "decode main"},
    "depth.py": {"compared": "train", "data": "main"},
    "distances.py": {"calls": "page_definitions main"},
    "fine_tuning.py": {
        "calls": "guessed pretrained",
        "data": "letters_of drawn rows_of_topics keep main",
        "training": "by_letters longer",
        "second/typing_errors.py": "measured",
    },
    "going_on.py": {"data": "joined main", "test_language_model_page.py": "Counts measure"},
    "heads.py": {
        "calls": "page_definitions keep_back shares guides",
        "data": "heads by_windows",
        "training": "overfitted by_counting main",
        "test_heads.py": "models counted smoothed",
    },
    "induction.py": {
        "data": "repeating twice rounded",
        "training": "train measure main",
        "second/repeated_tokens.py": "Attention Model loss given looks",
        "test_induction.py": "followed copied",
    },
    "encoder_layers.py": {
        "data": "told store main",
        "training": "take_encoder_layers parameters",
        "second/no_encoder.py": "train",
    },
    "english.py": {
        "data": "find_paragraphs indent keep_prose find_docstrings read_prose find_pinned "
        "find_files documents keep_sentences licence read_licence sources",
        "test_english.py": "is_prose without_repeats without_rare_words split runs_of_words",
    },
    "kneser_ney.py": {
        "data": "number_runs new_runs grown by_document main",
        "training": "measure",
        "test_kneser_ney.py": "count bits fit",
    },
    "language_models.py": {
        "data": "streams topic_bits",
        "training": "rate train main",
        "test_language_model_page.py": "token_bits",
    },
    "libraries.py": {"calls": "of_keras of_bert", "test_masking.py": "ask"},
    "mixing.py": {
        "compared": "Attention LinearAttention",
        "calls": "Recurrence Convolution",
        "machine": "timed measured main",
        "test_sequence_models.py": "kept",
    },
    "letter_runs.py": {
        "data": "Table windows",
        "test_fine_tuning_page.py": "Counts",
    },
    "longer_counts.py": {
        "data": "with_neighbours main",
        "calls": "fit by_labels by_bert",
        "training": "measured",
    },
    "noisy_captions.py": {
        "data": "collection joined kept share store main",
        "training": "Model learn run_of",
    },
    "older_negatives.py": {
        "calls": "one_way found",
        "data": "tests main",
        "training": "Encoders learn run_of",
    },
    "one_token.py": {
        "compared": "stages",
        "data": "sentences kind batch rounded main",
        "training": "Model train",
    },
    "page_models.py": {"machine": "measure main"},
    "page_cells.py": {"calls": "cell_of run_cells"},
    "patience.py": {"training": "shares main"},
    "ppm.py": {"calls": "added", "data": "measure main"},
    "pretrained_gpt.py": {
        "calls": "learn_tokens measure measure_page_model bits_per_byte",
        "data": "Tokens as_bytes packed unknown_words describe prepare store listed",
        "training": "halve main",
        "second/trained_writer.py": "rate train",
        "machine": "seconds_a_step",
    },
    "readings.py": {
        "data": "_day main",
        "training": "train",
        "test_transformer_claims.py": "training_examples kind",
    },
    "results.py": {"data": "made_by runs_in store write _json _in_lines"},
    "sentences.py": {
        "data": "sentences first_sentence draw keep tell",
        "test_kneser_ney.py": "Counted",
    },
    "sequence_models.py": {
        "compared": "Recurrent",
        "calls": "sized parameters models",
        "data": "copy_batches to_copy",
        "training": "Training of_copying of_dates run main",
        "test_sequence_models.py": "right",
    },
    "training.py": {
        "compared": "Torchs _copy_layer models batch check_parity",
        "machine": "stepper interleaved peak_mb _status_mb measure main",
    },
    "two_banks.py": {
        "data": "batch main",
        "training": "Model",
        "test_two_banks.py": "sentences learnt shown looks train",
    },
    "vision.py": {
        "calls": "run_of looked_at",
        "data": "reordered rounded mean_and_half runs_of main",
        "training": "Fitted",
    },
    "vision_gaps.py": {
        "calls": "gaps",
        "second/vision_gaps.py": "apart",
        "data": "same makers held_out_with_room runs_of main",
        "training": "linear without_positions circular unpooled",
    },
    "vision_letters.py": {
        "calls": "nearest twins main",
        "data": "collection reordered some_of store",
        "training": "vit cnn trained run_of rival",
        "test_letters_page.py": "right nearness looked_at",
    },
    "warm_up.py": {
        "compared": "SelfAttention Stack losses",
        "training": "Plain",
        "data": "train main",
    },
}
GRADER = ("check", "grading", "luck", "names", "neighbours", "pointing", "price", "term")


def test_every_page_and_benchmark_is_on_the_list():
    pages = {path.stem for path in (ROOT / "book").glob("[01]?_*.md")}
    scripts = {path.name for path in (ROOT / "benchmarks").glob("*.py")}
    assert set(FILES) == pages | scripts - {f"{name}.py" for name in GRADER}


@pytest.mark.parametrize("name", FILES)
def test_what_a_page_or_benchmark_defines_is_on_the_list_with_what_it_is_checked_against(name):
    listed = [each for names in FILES[name].values() for each in names.split()]
    assert len(listed) == len(set(listed)), "listed twice"
    found = set(definitions(name))
    assert not (new := found - set(listed)), (
        f"{sorted(new)} in {name}: does a reference in solutions/ do this? Then import it, or "
        "compare the two in test_same_as_references.py, with batches of 1 and 3, and list it as "
        f"'compared'. If not, list it under the file that checks it, or under one of {[*WORDS]}."
    )
    assert not (gone := set(listed) - found), f"{sorted(gone)}: no longer in {name}"


@pytest.mark.parametrize("name", FILES)
def test_what_checks_them_is_there(name):
    for place, names in FILES[name].items():
        if place.startswith("second/"):
            docstring = ast.get_docstring(ast.parse((ROOT / "benchmarks" / place).read_text()))
            assert name.endswith(".py") or re.search(rf"\b{int(name[:2])}\b", docstring)
        elif place not in WORDS:
            files = "test_same_as_references*.py" if place == "compared" else place
            text = "".join(f.read_text(encoding="utf-8") for f in (ROOT / "tests").rglob(files))
            for each in names.split():
                assert re.search(rf"\b{each}\b", text), f"{files} does not check {each} of {name}"
